"builtin.module"() <{sym_name = "jit_calls3"}> ({
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg3: tensor<8x16xf32>, %arg4: tensor<16x16xf32>):
    %5 = "func.call"(%arg4, %arg3) <{callee = @"<lambda>"}> : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %6 = "func.call"(%arg4, %5) <{callee = @"<lambda>"}> : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %7 = "func.call"(%arg4, %6) <{callee = @"<lambda>"}> : (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    "func.return"(%7) : (tensor<8x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<16x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>, res_attrs = [{}], sym_name = "<lambda>", sym_visibility = "private"}> ({
  ^bb0(%arg1: tensor<16x16xf32>, %arg2: tensor<8x16xf32>):
    %3 = "stablehlo.dot_general"(%arg2, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %4 = "func.call"(%3) <{callee = @relu}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
    "func.return"(%4) : (tensor<8x16xf32>) -> ()
  }) : () -> ()
  "func.func"() <{arg_attrs = [{}], function_type = (tensor<8x16xf32>) -> tensor<8x16xf32>, res_attrs = [{}], sym_name = "relu", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<8x16xf32>):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %1 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8x16xf32>
    %2 = "stablehlo.maximum"(%arg0, %1) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    "func.return"(%2) : (tensor<8x16xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
