module {
  func.func @m(%arg0: !torch.vtensor<[1,3,16,16],f32>) -> !torch.vtensor<[1,10],f32> attributes {torch.onnx_meta.ir_version = 8 : si64, torch.onnx_meta.opset_version = 17 : si64, torch.onnx_meta.producer_name = "", torch.onnx_meta.producer_version = ""} {
    %int10 = torch.constant.int 10
    %int6 = torch.constant.int 6
    %int3 = torch.constant.int 3
    %int16 = torch.constant.int 16
    %true = torch.constant.bool true
    %int8 = torch.constant.int 8
    %false = torch.constant.bool false
    %int2 = torch.constant.int 2
    %0 = torch.vtensor.literal(dense<1.000000e+00> : tensor<8x3x3x3xf32>) : !torch.vtensor<[8,3,3,3],f32>
    %1 = torch.vtensor.literal(dense<1.000000e+00> : tensor<8xf32>) : !torch.vtensor<[8],f32>
    %2 = torch.vtensor.literal(dense<1.000000e+00> : tensor<8x1x3x3xf32>) : !torch.vtensor<[8,1,3,3],f32>
    %3 = torch.vtensor.literal(dense<1.000000e+00> : tensor<8x6x2x2xf32>) : !torch.vtensor<[8,6,2,2],f32>
    %4 = torch.vtensor.literal(dense<1.000000e+00> : tensor<10x6xf32>) : !torch.vtensor<[10,6],f32>
    %5 = torch.vtensor.literal(dense<1.000000e+00> : tensor<10xf32>) : !torch.vtensor<[10],f32>
    %none = torch.constant.none
    %int1 = torch.constant.int 1
    %int0 = torch.constant.int 0
    %6 = torch.prim.ListConstruct %int1, %int1 : (!torch.int, !torch.int) -> !torch.list<int>
    %7 = torch.prim.ListConstruct %int2, %int2 : (!torch.int, !torch.int) -> !torch.list<int>
    %8 = torch.prim.ListConstruct %int0, %int0 : (!torch.int, !torch.int) -> !torch.list<int>
    %9 = torch.aten.convolution %arg0, %0, %1, %7, %6, %6, %false, %8, %int1 : !torch.vtensor<[1,3,16,16],f32>, !torch.vtensor<[8,3,3,3],f32>, !torch.vtensor<[8],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[1,8,8,8],f32>
    %10 = torch.aten.relu %9 : !torch.vtensor<[1,8,8,8],f32> -> !torch.vtensor<[1,8,8,8],f32>
    %11 = torch.aten.convolution %10, %2, %none, %6, %6, %6, %false, %8, %int8 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,1,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[1,8,8,8],f32>
    %12 = torch.aten.convolution %11, %3, %none, %7, %8, %6, %true, %8, %int1 : !torch.vtensor<[1,8,8,8],f32>, !torch.vtensor<[8,6,2,2],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[1,6,16,16],f32>
    %13 = torch.prim.ListConstruct %int16, %int16 : (!torch.int, !torch.int) -> !torch.list<int>
    %14 = torch.aten.avg_pool2d %12, %13, %6, %8, %false, %false, %none : !torch.vtensor<[1,6,16,16],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[1,6,1,1],f32>
    %15 = torch.prims.collapse %14, %int1, %int3 : !torch.vtensor<[1,6,1,1],f32>, !torch.int, !torch.int -> !torch.vtensor<[1,6],f32>
    %16 = torch.prims.collapse %15, %int0, %int0 : !torch.vtensor<[1,6],f32>, !torch.int, !torch.int -> !torch.vtensor<[1,6],f32>
    %17 = torch.aten.transpose.int %4, %int0, %int1 : !torch.vtensor<[10,6],f32>, !torch.int, !torch.int -> !torch.vtensor<[6,10],f32>
    %18 = torch.aten.mm %16, %17 : !torch.vtensor<[1,6],f32>, !torch.vtensor<[6,10],f32> -> !torch.vtensor<[1,10],f32>
    %19 = torch.aten.add.Tensor %18, %5, %int1 : !torch.vtensor<[1,10],f32>, !torch.vtensor<[10],f32>, !torch.int -> !torch.vtensor<[1,10],f32>
    return %19 : !torch.vtensor<[1,10],f32>
  }
}
