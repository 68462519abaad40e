module @m {
  func.func public @main(%0: tensor<2x2xf32> {tf.aliasing_output = 0 : i32}, %1: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<f32>, tensor<1x2xf32>) {
    %2 = "stablehlo.constant"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
    %3 = "stablehlo.constant"() {value = dense<"0x0000803F00000040"> : tensor<2xf32>} : () -> tensor<2xf32> // 1, 2
    %4, %5 = "stablehlo.while"(%2, %0) ({
      ^bb0(%6: tensor<i64>, %7: tensor<2x2xf32>):
        %8 = "stablehlo.constant"() {value = dense<3> : tensor<i64>} : () -> tensor<i64>
        %9 = "stablehlo.compare"(%6, %8) {comparison_direction = #stablehlo<comparison_direction LT>, compare_type = #stablehlo<comparison_type SIGNED>} : (tensor<i64>, tensor<i64>) -> tensor<i1>
        "stablehlo.return"(%9) : (tensor<i1>) -> ()
    }, {
      ^bb0(%10: tensor<i64>, %11: tensor<2x2xf32>):
        %12 = "stablehlo.dot_general"(%11, %1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("dense")
        %13 = "stablehlo.tanh"(%12) : (tensor<2x2xf32>) -> tensor<2x2xf32>
        %14 = "stablehlo.constant"() {value = dense<1.0> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
        %15 = "stablehlo.add"(%13, %14) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
        %16 = "stablehlo.constant"() {value = dense<1> : tensor<i64>} : () -> tensor<i64>
        %17 = "stablehlo.add"(%10, %16) : (tensor<i64>, tensor<i64>) -> tensor<i64>
        "stablehlo.return"(%17, %15) : (tensor<i64>, tensor<2x2xf32>) -> ()
    }) : (tensor<i64>, tensor<2x2xf32>) -> (tensor<i64>, tensor<2x2xf32>)
    %18 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %19 = "stablehlo.reduce"(%3, %18) ({
      ^bb0(%20: tensor<f32>, %21: tensor<f32>):
        %22 = "stablehlo.add"(%20, %21) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%22) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> tensor<f32>
    %23 = "stablehlo.constant"() {value = dense<[7]> : tensor<1xi32>} : () -> tensor<1xi32>
    %24 = "stablehlo.gather"(%0, %23) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>, indices_are_sorted = false} : (tensor<2x2xf32>, tensor<1xi32>) -> tensor<1x2xf32>
    func.return %5, %19, %24 : tensor<2x2xf32>, tensor<f32>, tensor<1x2xf32>
  }
}
