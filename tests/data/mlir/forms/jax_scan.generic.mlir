"builtin.module"() <{sym_name = "jit_scan"}> ({
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg2: tensor<8x16xf32>, %arg3: tensor<16x16xf32>):
    %2 = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %3:3 = "stablehlo.while"(%arg3, %2, %arg2) ({
    ^bb0(%arg7: tensor<16x16xf32>, %arg8: tensor<i32>, %arg9: tensor<8x16xf32>):
      %7 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
      %8 = "stablehlo.compare"(%arg8, %7) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg4: tensor<16x16xf32>, %arg5: tensor<i32>, %arg6: tensor<8x16xf32>):
      %4 = "func.call"(%arg4, %arg6) <{callee = @closed_call}> : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
      %5 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %6 = "stablehlo.add"(%arg5, %5) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%arg4, %6, %4) : (tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>) -> ()
    }) : (tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>) -> (tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>)
    "func.return"(%3#2) : (tensor<8x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>, res_attrs = [{}], sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<16x16xf32>, %arg1: tensor<8x16xf32>):
    %0 = "stablehlo.dot_general"(%arg1, %arg0) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %1 = "stablehlo.tanh"(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    "func.return"(%1) : (tensor<8x16xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
