module @m {
  func.func public @main(%0: tensor<1x4x4x2xf32>, %1: tensor<3x3x1x2xf32>, %2: tensor<i1>) -> () {
    %3 = "stablehlo.convolution"(%0, %1) {window_strides = array<i64: 1, 2>, padding = dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 1>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64} : (tensor<1x4x4x2xf32>, tensor<3x3x1x2xf32>) -> tensor<1x7x2x2xf32>
    %4 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %5 = "stablehlo.reduce_window"(%0, %4) ({
      ^bb0(%6: tensor<f32>, %7: tensor<f32>):
        %8 = "stablehlo.maximum"(%6, %7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<0> : tensor<4x2xi64>} : (tensor<1x4x4x2xf32>, tensor<f32>) -> tensor<1x2x2x2xf32> loc("pool")
    %9 = "stablehlo.select_and_scatter"(%0, %5, %4) ({
      ^bb0(%10: tensor<f32>, %11: tensor<f32>):
        %12 = "stablehlo.compare"(%10, %11) {comparison_direction = #stablehlo<comparison_direction GE>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "stablehlo.return"(%12) : (tensor<i1>) -> ()
    }, {
      ^bb0(%13: tensor<f32>, %14: tensor<f32>):
        %15 = "stablehlo.add"(%13, %14) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%15) : (tensor<f32>) -> ()
    }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>, padding = dense<0> : tensor<4x2xi64>} : (tensor<1x4x4x2xf32>, tensor<1x2x2x2xf32>, tensor<f32>) -> tensor<1x4x4x2xf32>
    %16 = "stablehlo.reshape"(%9) : (tensor<1x4x4x2xf32>) -> tensor<8x4xf32>
    %17 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<8x4xi32>
    %18, %19 = "stablehlo.sort"(%16, %17) ({
      ^bb0(%20: tensor<f32>, %21: tensor<f32>, %22: tensor<i32>, %23: tensor<i32>):
        %24 = "stablehlo.compare"(%20, %21) {comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
        "stablehlo.return"(%24) : (tensor<i1>) -> ()
    }) {dimension = 1 : i64, is_stable = true} : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
    %25 = "stablehlo.constant"() {value = dense<[1, 9, 0]> : tensor<3xi32>} : () -> tensor<3xi32>
    %26 = "stablehlo.constant"() {value = dense<2.0> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
    %27 = "stablehlo.scatter"(%16, %25, %26) ({
      ^bb0(%28: tensor<f32>, %29: tensor<f32>):
        %30 = "stablehlo.add"(%28, %29) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%30) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<8x4xf32>, tensor<3xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
    %31 = "stablehlo.pad"(%27, %4) {edge_padding_low = array<i64: 1, -1>, edge_padding_high = array<i64: 0, 2>, interior_padding = array<i64: 1, 0>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<16x5xf32>
    %32 = "stablehlo.slice"(%31) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 16, 4>, strides = array<i64: 2, 1>} : (tensor<16x5xf32>) -> tensor<8x4xf32>
    %33 = "stablehlo.concatenate"(%32, %16) {dimension = 0 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
    %34 = "stablehlo.transpose"(%33) {permutation = array<i64: 1, 0>} : (tensor<16x4xf32>) -> tensor<4x16xf32>
    %35 = "stablehlo.reverse"(%34) {dimensions = array<i64: 0, 1>} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %36 = "stablehlo.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
    %37 = "stablehlo.dynamic_slice"(%35, %36, %36) {slice_sizes = array<i64: 2, 2>} : (tensor<4x16xf32>, tensor<i64>, tensor<i64>) -> tensor<2x2xf32>
    %38 = "stablehlo.dynamic_update_slice"(%35, %37, %36, %36) : (tensor<4x16xf32>, tensor<2x2xf32>, tensor<i64>, tensor<i64>) -> tensor<4x16xf32>
    %39 = "stablehlo.convert"(%38) : (tensor<4x16xf32>) -> tensor<4x16xui8>
    %40 = "stablehlo.clamp"(%4, %38, %4) : (tensor<f32>, tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    %41 = "stablehlo.select"(%2, %40, %38) : (tensor<i1>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %42 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4x16xf32>
    %43 = "stablehlo.all_reduce"(%42) ({
      ^bb0(%44: tensor<f32>, %45: tensor<f32>):
        %46 = "stablehlo.add"(%44, %45) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%46) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0]]> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids = unit} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    func.return
  }
}
