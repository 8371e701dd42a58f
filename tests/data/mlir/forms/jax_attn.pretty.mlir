module @jit_attn attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x9x4x8xf32>, %arg1: tensor<2x11x4x8xf32>, %arg2: tensor<2x11x4x8xf32>) -> (tensor<2x9x4x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x9x4x8xf32>, tensor<2x11x4x8xf32>) -> tensor<2x4x9x11xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x9x11xf32>, tensor<f32>) -> tensor<2x4x9xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4x9xf32>
    %3 = stablehlo.maximum %2, %1 : tensor<2x4x9xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x4x9xf32>) -> tensor<2x4x9x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2, 3] : (tensor<2x4x9x1xf32>) -> tensor<2x4x9x11xf32>
    %6 = stablehlo.subtract %0, %5 : tensor<2x4x9x11xf32>
    %7 = stablehlo.exponential %6 : tensor<2x4x9x11xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [3] : (tensor<2x4x9x11xf32>, tensor<f32>) -> tensor<2x4x9xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x4x9xf32>) -> tensor<2x4x9x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<2x4x9x1xf32>) -> tensor<2x4x9x11xf32>
    %11 = stablehlo.divide %7, %10 : tensor<2x4x9x11xf32>
    %12 = stablehlo.dot_general %arg2, %11, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x11x4x8xf32>, tensor<2x4x9x11xf32>) -> tensor<2x4x8x9xf32>
    %13 = stablehlo.transpose %12, dims = [0, 3, 1, 2] : (tensor<2x4x8x9xf32>) -> tensor<2x9x4x8xf32>
    return %13 : tensor<2x9x4x8xf32>
  }
}
