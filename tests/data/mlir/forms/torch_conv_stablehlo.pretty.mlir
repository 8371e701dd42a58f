module {
  func.func @m(%arg0: tensor<1x3x16x16xf32>) -> tensor<1x10xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<8x3x3x3xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<8xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<8x1x3x3xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<8x6x2x2xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<10x6xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<10xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<1x8x8x8xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.convolution(%arg0, %cst) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 2], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x16x16xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x8x8xf32>
    %1 = stablehlo.reshape %cst_0 : (tensor<8xf32>) -> tensor<8x1x1xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1, 2, 3] : (tensor<8x1x1xf32>) -> tensor<1x8x8x8xf32>
    %3 = stablehlo.add %0, %2 : tensor<1x8x8x8xf32>
    %4 = stablehlo.maximum %3, %cst_5 : tensor<1x8x8x8xf32>
    %5 = stablehlo.convolution(%4, %cst_1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : (tensor<1x8x8x8xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x8x8xf32>
    %6 = stablehlo.transpose %cst_2, dims = [2, 3, 1, 0] : (tensor<8x6x2x2xf32>) -> tensor<2x2x6x8xf32>
    %7 = stablehlo.reverse %6, dims = [0, 1] : tensor<2x2x6x8xf32>
    %8 = stablehlo.convolution(%5, %7) dim_numbers = [b, f, 0, 1]x[0, 1, o, i]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x8xf32>, tensor<2x2x6x8xf32>) -> tensor<1x6x16x16xf32>
    %9 = "stablehlo.reduce_window"(%8, %cst_6) <{padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 16, 16>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %19 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %19 : tensor<f32>
    }) : (tensor<1x6x16x16xf32>, tensor<f32>) -> tensor<1x6x1x1xf32>
    %10 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<1x6x16x16xf32>
    %11 = "stablehlo.reduce_window"(%10, %cst_6) <{padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 1, 16, 16>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %19 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %19 : tensor<f32>
    }) : (tensor<1x6x16x16xf32>, tensor<f32>) -> tensor<1x6x1x1xf32>
    %12 = stablehlo.divide %9, %11 : tensor<1x6x1x1xf32>
    %13 = stablehlo.reshape %12 : (tensor<1x6x1x1xf32>) -> tensor<1x6xf32>
    %14 = stablehlo.reshape %13 : (tensor<1x6xf32>) -> tensor<1x6xf32>
    %15 = stablehlo.transpose %cst_3, dims = [1, 0] : (tensor<10x6xf32>) -> tensor<6x10xf32>
    %16 = stablehlo.dot_general %14, %15, contracting_dims = [1] x [0] : (tensor<1x6xf32>, tensor<6x10xf32>) -> tensor<1x10xf32>
    %17 = stablehlo.broadcast_in_dim %cst_4, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %18 = stablehlo.add %16, %17 : tensor<1x10xf32>
    return %18 : tensor<1x10xf32>
  }
}
