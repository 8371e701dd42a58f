"builtin.module"() <{sym_name = "jit_attn"}> ({
  "func.func"() <{arg_attrs = [{}, {}, {}], function_type = (tensor<2x9x4x8xf32>, tensor<2x11x4x8xf32>, tensor<2x11x4x8xf32>) -> tensor<2x9x4x8xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2x9x4x8xf32>, %arg1: tensor<2x11x4x8xf32>, %arg2: tensor<2x11x4x8xf32>):
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 2], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x9x4x8xf32>, tensor<2x11x4x8xf32>) -> tensor<2x4x9x11xf32>
    %1 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg5: tensor<f32>, %arg6: tensor<f32>):
      %18 = "stablehlo.maximum"(%arg5, %arg6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%18) : (tensor<f32>) -> ()
    }) : (tensor<2x4x9x11xf32>, tensor<f32>) -> tensor<2x4x9xf32>
    %3 = "stablehlo.constant"() <{value = dense<0xFF800000> : tensor<f32>}> : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x4x9xf32>
    %5 = "stablehlo.maximum"(%4, %2) : (tensor<2x4x9xf32>, tensor<2x4x9xf32>) -> tensor<2x4x9xf32>
    %6 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x9xf32>) -> tensor<2x4x9x1xf32>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x4x9x1xf32>) -> tensor<2x4x9x11xf32>
    %8 = "stablehlo.subtract"(%0, %7) : (tensor<2x4x9x11xf32>, tensor<2x4x9x11xf32>) -> tensor<2x4x9x11xf32>
    %9 = "stablehlo.exponential"(%8) : (tensor<2x4x9x11xf32>) -> tensor<2x4x9x11xf32>
    %10 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %11 = "stablehlo.reduce"(%9, %10) <{dimensions = array<i64: 3>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %17 = "stablehlo.add"(%arg3, %arg4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%17) : (tensor<f32>) -> ()
    }) : (tensor<2x4x9x11xf32>, tensor<f32>) -> tensor<2x4x9xf32>
    %12 = "stablehlo.broadcast_in_dim"(%11) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<2x4x9xf32>) -> tensor<2x4x9x1xf32>
    %13 = "stablehlo.broadcast_in_dim"(%12) <{broadcast_dimensions = array<i64: 0, 1, 2, 3>}> : (tensor<2x4x9x1xf32>) -> tensor<2x4x9x11xf32>
    %14 = "stablehlo.divide"(%9, %13) : (tensor<2x4x9x11xf32>, tensor<2x4x9x11xf32>) -> tensor<2x4x9x11xf32>
    %15 = "stablehlo.dot_general"(%arg2, %14) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 2], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<2x11x4x8xf32>, tensor<2x4x9x11xf32>) -> tensor<2x4x8x9xf32>
    %16 = "stablehlo.transpose"(%15) <{permutation = array<i64: 0, 3, 1, 2>}> : (tensor<2x4x8x9xf32>) -> tensor<2x9x4x8xf32>
    "func.return"(%16) : (tensor<2x9x4x8xf32>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
