module {
  func.func @main_graph(%arg0: !torch.vtensor<[2,3,16,16],f32>, %arg1: !torch.vtensor<[8,3,3,3],f32>) -> !torch.vtensor<[2,10],f32>
      attributes {torch.onnx_meta.ir_version = 8 : si64, torch.onnx_meta.producer_name = "pytorch"} {
    %none = torch.constant.none
    %0 = torch.operator "onnx.Constant"() {torch.onnx.value_ints = [2 : si64, -1 : si64]} : () -> !torch.vtensor<[2],si64>
    %1 = torch.operator "onnx.Constant"() {torch.onnx.value = dense_resource<_w> : tensor<512x10xf32>} : () -> !torch.vtensor<[512,10],f32>
    %2 = torch.operator "onnx.Conv"(%arg0, %arg1, %none) {torch.onnx.auto_pad = "SAME_UPPER", torch.onnx.strides = [2 : si64, 2 : si64]} : (!torch.vtensor<[2,3,16,16],f32>, !torch.vtensor<[8,3,3,3],f32>, !torch.none) -> !torch.vtensor<[2,8,8,8],f32>
    %3 = torch.operator "onnx.Relu"(%2) : (!torch.vtensor<[2,8,8,8],f32>) -> !torch.vtensor<[2,8,8,8],f32>
    %4 = torch.operator "onnx.Reshape"(%3, %0) : (!torch.vtensor<[2,8,8,8],f32>, !torch.vtensor<[2],si64>) -> !torch.vtensor<[2,512],f32>
    %5 = torch.operator "onnx.MatMul"(%4, %1) : (!torch.vtensor<[2,512],f32>, !torch.vtensor<[512,10],f32>) -> !torch.vtensor<[2,10],f32>
    %6 = torch.operator "onnx.MaxPool"(%arg0) {torch.onnx.kernel_shape = [2 : si64, 2 : si64]} : (!torch.vtensor<[2,3,16,16],f32>) -> !torch.vtensor<[2,3,15,15],f32>
    %7 = torch.operator "onnx.AveragePool"(%arg0) {torch.onnx.kernel_shape = [2 : si64, 2 : si64]} : (!torch.vtensor<[2,3,16,16],f32>) -> !torch.vtensor<[2,3,15,15],f32>
    %8 = torch.operator "onnx.ReduceL2"(%arg0) {torch.onnx.keepdims = 1 : si64} : (!torch.vtensor<[2,3,16,16],f32>) -> !torch.vtensor<[1,1,1,1],f32>
    return %5 : !torch.vtensor<[2,10],f32>
  }
}
