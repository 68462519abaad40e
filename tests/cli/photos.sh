# photos N: a folder photos/ of three classes with N JPEG or PNG files each.
photos() {
    local n=$1 class i
    for class in daisy rose tulip; do
        mkdir -p "photos/$class"
        for ((i = 0; i < n; i++)); do
            case $((i % 3)) in
            0) cp "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" "photos/$class/$class-$i.jpg" ;;
            1) cp "$SEXTANT_SRC/fuzz/corpus/jpeg/gray.jpg" "photos/$class/$class-$i.jpg" ;;
            2) cp "$SEXTANT_SRC/fuzz/corpus/png/rgba.png" "photos/$class/$class-$i.png" ;;
            esac
        done
    done
}
