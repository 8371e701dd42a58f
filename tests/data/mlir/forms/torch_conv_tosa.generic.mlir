"builtin.module"() ({
  "func.func"() <{function_type = (tensor<1x3x16x16xf32>) -> tensor<1x10xf32>, sym_name = "m"}> ({
  ^bb0(%arg0: tensor<1x3x16x16xf32>):
    %0 = "tosa.const"() <{values = dense<1.000000e+00> : tensor<8xf32>}> : () -> tensor<8xf32>
    %1 = "tosa.const"() <{values = dense<0.000000e+00> : tensor<1xf32>}> : () -> tensor<1xf32>
    %2 = "tosa.const"() <{values = dense<0.000000e+00> : tensor<8xf32>}> : () -> tensor<8xf32>
    %3 = "tosa.const"() <{values = dense<0.000000e+00> : tensor<6xf32>}> : () -> tensor<6xf32>
    %4 = "tosa.const_shape"() <{values = dense<[1, 1, 6]> : tensor<3xindex>}> : () -> !tosa.shape<3>
    %5 = "tosa.const_shape"() <{values = dense<[1, 10]> : tensor<2xindex>}> : () -> !tosa.shape<2>
    %6 = "tosa.const"() <{values = dense<1.000000e+00> : tensor<8x3x3x3xf32>}> : () -> tensor<8x3x3x3xf32>
    %7 = "tosa.const"() <{values = dense<1.000000e+00> : tensor<3x3x8x1xf32>}> : () -> tensor<3x3x8x1xf32>
    %8 = "tosa.const"() <{values = dense<1.000000e+00> : tensor<6x2x2x8xf32>}> : () -> tensor<6x2x2x8xf32>
    %9 = "tosa.const"() <{values = dense<1.000000e+00> : tensor<1x6x10xf32>}> : () -> tensor<1x6x10xf32>
    %10 = "tosa.const"() <{values = dense<1.000000e+00> : tensor<1x10xf32>}> : () -> tensor<1x10xf32>
    %11 = "tosa.transpose"(%arg0) <{perms = array<i32: 0, 2, 3, 1>}> : (tensor<1x3x16x16xf32>) -> tensor<1x16x16x3xf32>
    %12 = "tosa.conv2d"(%11, %6, %0, %1, %1) <{acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 0, 1, 0>, stride = array<i64: 2, 2>}> : (tensor<1x16x16x3xf32>, tensor<8x3x3x3xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8x8xf32>
    %13 = "tosa.clamp"(%12) <{max_val = 3.40282347E+38 : f32, min_val = 0.000000e+00 : f32, nan_mode = #tosa.nan_mode<PROPAGATE>}> : (tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
    %14 = "tosa.depthwise_conv2d"(%13, %7, %2, %1, %1) <{acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>}> : (tensor<1x8x8x8xf32>, tensor<3x3x8x1xf32>, tensor<8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x8x8xf32>
    %15 = "tosa.transpose_conv2d"(%14, %8, %3, %1, %1) <{acc_type = f32, out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>}> : (tensor<1x8x8x8xf32>, tensor<6x2x2x8xf32>, tensor<6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x16x16x6xf32>
    %16 = "tosa.avg_pool2d"(%15, %1, %1) <{acc_type = f32, kernel = array<i64: 16, 16>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>}> : (tensor<1x16x16x6xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x1x6xf32>
    %17 = "tosa.reshape"(%16, %4) : (tensor<1x1x1x6xf32>, !tosa.shape<3>) -> tensor<1x1x6xf32>
    %18 = "tosa.matmul"(%17, %9, %1, %1) : (tensor<1x1x6xf32>, tensor<1x6x10xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x10xf32>
    %19 = "tosa.reshape"(%18, %5) : (tensor<1x1x10xf32>, !tosa.shape<2>) -> tensor<1x10xf32>
    %20 = "tosa.add"(%19, %10) : (tensor<1x10xf32>, tensor<1x10xf32>) -> tensor<1x10xf32>
    "func.return"(%20) : (tensor<1x10xf32>) -> ()
  }) : () -> ()
}) : () -> ()
