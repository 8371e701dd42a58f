module {
  ta.func @main() {
    %0 = "ta.index_label"() : () -> !ta.index
    %1 = "ta.index_label"() : () -> !ta.index
    %2 = "ta.index_label"() : () -> !ta.index
    %3 = "ta.index_label"() : () -> !ta.index
    %4 = "ta.dense_tensor_decl"() : () -> tensor<8x4xf64>
    %5 = "ta.dense_tensor_decl"() : () -> tensor<4x2xf64>
    %6 = "ta.dense_tensor_decl"() : () -> tensor<8x2xf64>
    %7 = "ta.dense_tensor_decl"() : () -> tensor<2x16xf64>
    %8 = "ta.dense_tensor_decl"() : () -> tensor<8x16xf64>
    "ta.fill"(%4) <{value = 2.200000e+00 : f64}> : (tensor<8x4xf64>) -> ()
    "ta.fill"(%6) <{value = 0.000000e+00 : f64}> : (tensor<8x2xf64>) -> ()
    %9 = "ta.mul"(%4, %5, %0, %1, %1, %2, %0, %2) <{MaskType = "none", indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], operandSegmentSizes = array<i32: 1, 1, 6, 0>, semiring = "plusxy_times"}> {__alpha__ = 1.000000e+00 : f64, __beta__ = 0.000000e+00 : f64} : (tensor<8x4xf64>, tensor<4x2xf64>, !ta.index, !ta.index, !ta.index, !ta.index, !ta.index, !ta.index) -> tensor<8x2xf64>
    "ta.set_op"(%9, %6) {__beta__ = 0.000000e+00 : f64} : (tensor<8x2xf64>, tensor<8x2xf64>) -> ()
    %10 = "ta.mul"(%6, %7, %0, %2, %2, %3, %0, %3) <{MaskType = "none", indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], operandSegmentSizes = array<i32: 1, 1, 6, 0>, semiring = "plusxy_times"}> : (tensor<8x2xf64>, tensor<2x16xf64>, !ta.index, !ta.index, !ta.index, !ta.index, !ta.index, !ta.index) -> tensor<8x16xf64>
    "ta.set_op"(%10, %8) : (tensor<8x16xf64>, tensor<8x16xf64>) -> ()
    %11 = "ta.elews_mul"(%8, %8, %0, %3, %0, %3, %0, %3) <{MaskType = "none", indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], semiring = "noop_times"}> : (tensor<8x16xf64>, tensor<8x16xf64>, !ta.index, !ta.index, !ta.index, !ta.index, !ta.index, !ta.index) -> tensor<8x16xf64>
    "ta.print"(%8) : (tensor<8x16xf64>) -> ()
    ta.return
  }
}
