"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[1,3,16,16],f32>) -> !torch.vtensor<[1,10],f32>, sym_name = "m"}> ({
  ^bb0(%arg0: !torch.vtensor<[1,3,16,16],f32>):
    %0 = "torch.constant.int"() <{value = 10 : i64}> : () -> !torch.int
    %1 = "torch.constant.int"() <{value = 6 : i64}> : () -> !torch.int
    %2 = "torch.constant.int"() <{value = 3 : i64}> : () -> !torch.int
    %3 = "torch.constant.int"() <{value = 16 : i64}> : () -> !torch.int
    %4 = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %5 = "torch.constant.int"() <{value = 8 : i64}> : () -> !torch.int
    %6 = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %7 = "torch.constant.int"() <{value = 2 : i64}> : () -> !torch.int
    %8 = "torch.vtensor.literal"() <{value = dense<1.000000e+00> : tensor<8x3x3x3xf32>}> : () -> !torch.vtensor<[8,3,3,3],f32>
    %9 = "torch.vtensor.literal"() <{value = dense<1.000000e+00> : tensor<8xf32>}> : () -> !torch.vtensor<[8],f32>
    %10 = "torch.vtensor.literal"() <{value = dense<1.000000e+00> : tensor<8x1x3x3xf32>}> : () -> !torch.vtensor<[8,1,3,3],f32>
    %11 = "torch.vtensor.literal"() <{value = dense<1.000000e+00> : tensor<8x6x2x2xf32>}> : () -> !torch.vtensor<[8,6,2,2],f32>
    %12 = "torch.vtensor.literal"() <{value = dense<1.000000e+00> : tensor<10x6xf32>}> : () -> !torch.vtensor<[10,6],f32>
    %13 = "torch.vtensor.literal"() <{value = dense<1.000000e+00> : tensor<10xf32>}> : () -> !torch.vtensor<[10],f32>
    %14 = "torch.constant.none"() : () -> !torch.none
    %15 = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
    %16 = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
    %17 = "torch.prim.ListConstruct"(%15, %15) : (!torch.int, !torch.int) -> !torch.list<int>
    %18 = "torch.prim.ListConstruct"(%7, %7) : (!torch.int, !torch.int) -> !torch.list<int>
    %19 = "torch.prim.ListConstruct"(%16, %16) : (!torch.int, !torch.int) -> !torch.list<int>
    %20 = "torch.aten.convolution"(%arg0, %8, %9, %18, %17, %17, %6, %19, %15) : (!torch.vtensor<[1,3,16,16],f32>, !torch.vtensor<[8,3,3,3],f32>, !torch.vtensor<[8],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int) -> !torch.vtensor<[1,8,8,8],f32>
    %21 = "torch.aten.relu"(%20) : (!torch.vtensor<[1,8,8,8],f32>) -> !torch.vtensor<[1,8,8,8],f32>
    %22 = "torch.aten.convolution"(%21, %10, %14, %17, %17, %17, %6, %19, %5) : (!torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int) -> !torch.vtensor<[1,8,8,8],f32>
    %23 = "torch.aten.convolution"(%22, %11, %14, %18, %19, %17, %4, %19, %15) : (!torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,6,2,2],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int) -> !torch.vtensor<[1,6,16,16],f32>
    %24 = "torch.prim.ListConstruct"(%3, %3) : (!torch.int, !torch.int) -> !torch.list<int>
    %25 = "torch.aten.avg_pool2d"(%23, %24, %17, %19, %6, %6, %14) : (!torch.vtensor<[1,6,16,16],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.bool, !torch.none) -> !torch.vtensor<[1,6,1,1],f32>
    %26 = "torch.prims.collapse"(%25, %15, %2) : (!torch.vtensor<[1,6,1,1],f32>, !torch.int, !torch.int) -> !torch.vtensor<[1,6],f32>
    %27 = "torch.prims.collapse"(%26, %16, %16) : (!torch.vtensor<[1,6],f32>, !torch.int, !torch.int) -> !torch.vtensor<[1,6],f32>
    %28 = "torch.aten.transpose.int"(%12, %16, %15) : (!torch.vtensor<[10,6],f32>, !torch.int, !torch.int) -> !torch.vtensor<[6,10],f32>
    %29 = "torch.aten.mm"(%27, %28) : (!torch.vtensor<[1,6],f32>, !torch.vtensor<[6,10],f32>) -> !torch.vtensor<[1,10],f32>
    %30 = "torch.aten.add.Tensor"(%29, %13, %15) : (!torch.vtensor<[1,10],f32>, !torch.vtensor<[10],f32>, !torch.int) -> !torch.vtensor<[1,10],f32>
    "func.return"(%30) : (!torch.vtensor<[1,10],f32>) -> ()
  }) {torch.onnx_meta.ir_version = 8 : si64, torch.onnx_meta.opset_version = 17 : si64, torch.onnx_meta.producer_name = "", torch.onnx_meta.producer_version = ""} : () -> ()
}) : () -> ()
