"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x16x16xf32>) -> tensor<1x10xf32>, sym_name = "m"}> ({
  ^bb0(%arg0: tensor<1x3x16x16xf32>):
    %0 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<8x3x3x3xf32>}> : () -> tensor<8x3x3x3xf32>
    %1 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<8xf32>}> : () -> tensor<8xf32>
    %2 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<8x1x3x3xf32>}> : () -> tensor<8x1x3x3xf32>
    %3 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<8x6x2x2xf32>}> : () -> tensor<8x6x2x2xf32>
    %4 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<10x6xf32>}> : () -> tensor<10x6xf32>
    %5 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<10xf32>}> : () -> tensor<10xf32>
    %6 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<1x8x8x8xf32>}> : () -> tensor<1x8x8x8xf32>
    %7 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %8 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %9 = "stablehlo.convolution"(%arg0, %0) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, padding = dense<1> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 2, 2>}> : (tensor<1x3x16x16xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x8x8xf32>
    %10 = "stablehlo.reshape"(%1) : (tensor<8xf32>) -> tensor<8x1x1xf32>
    %11 = "stablehlo.broadcast_in_dim"(%10) <{broadcast_dimensions = array<i64: 1, 2, 3>}> : (tensor<8x1x1xf32>) -> tensor<1x8x8x8xf32>
    %12 = "stablehlo.add"(%9, %11) : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %13 = "stablehlo.maximum"(%12, %6) : (tensor<1x8x8x8xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %14 = "stablehlo.convolution"(%13, %2) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 8 : i64, padding = dense<1> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 1>}> : (tensor<1x8x8x8xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x8x8xf32>
    %15 = "stablehlo.transpose"(%3) <{permutation = array<i64: 2, 3, 1, 0>}> : (tensor<8x6x2x2xf32>) -> tensor<2x2x6x8xf32>
    %16 = "stablehlo.reverse"(%15) <{dimensions = array<i64: 0, 1>}> : (tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
    %17 = "stablehlo.convolution"(%14, %16) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[0, 1, o, i]->[b, f, 0, 1]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 2, 2>, padding = dense<1> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>, window_strides = array<i64: 1, 1>}> : (tensor<1x8x8x8xf32>, tensor<2x2x6x8xf32>) -> tensor<1x6x16x16xf32>
    %18 = "stablehlo.reduce_window"(%17, %7) <{padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 16, 16>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
      %29 = "stablehlo.add"(%arg3, %arg4) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%29) : (tensor<f32>) -> ()
    }) : (tensor<1x6x16x16xf32>, tensor<f32>) -> tensor<1x6x1x1xf32>
    %19 = "stablehlo.broadcast_in_dim"(%8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x6x16x16xf32>
    %20 = "stablehlo.reduce_window"(%19, %7) <{padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 16, 16>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %28 = "stablehlo.add"(%arg1, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%28) : (tensor<f32>) -> ()
    }) : (tensor<1x6x16x16xf32>, tensor<f32>) -> tensor<1x6x1x1xf32>
    %21 = "stablehlo.divide"(%18, %20) : (tensor<1x6x1x1xf32>, tensor<1x6x1x1xf32>) -> tensor<1x6x1x1xf32>
    %22 = "stablehlo.reshape"(%21) : (tensor<1x6x1x1xf32>) -> tensor<1x6xf32>
    %23 = "stablehlo.reshape"(%22) : (tensor<1x6xf32>) -> tensor<1x6xf32>
    %24 = "stablehlo.transpose"(%4) <{permutation = array<i64: 1, 0>}> : (tensor<10x6xf32>) -> tensor<6x10xf32>
    %25 = "stablehlo.dot_general"(%23, %24) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<1x6xf32>, tensor<6x10xf32>) -> tensor<1x10xf32>
    %26 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64: 1>}> : (tensor<10xf32>) -> tensor<1x10xf32>
    %27 = "stablehlo.add"(%25, %26) : (tensor<1x10xf32>, tensor<1x10xf32>) -> tensor<1x10xf32>
    "func.return"(%27) : (tensor<1x10xf32>) -> ()
  }) : () -> ()
}) : () -> ()
