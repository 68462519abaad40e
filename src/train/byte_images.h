/* Images that travel to the device as they are: where preprocessing ends with a cast of whole
 * numbers and a scale, the pipeline keeps bytes, and the program casts and scales them, with the
 * same result to the bit. A quarter of the bytes is copied to the device, and kept in memory
 * before.
 *
 *   pixels   ──  crop, flip  ── uint8 ──   shuffle, batch   ── copy ──  cast, scale  ── model
 *
 * Encoded images (JPEG) that are resized with interpolation stay floats: their sizes are known when
 * they are decoded, after the batch's type is fixed, and between pixels values are not whole, so
 * that bytes would round them.
 *
 * Only for devices with memory of their own: elsewhere nothing travels, and the pipeline scales
 * images while it copies them anyway. */
#ifndef SX_TRAIN_BYTE_IMAGES_H
#define SX_TRAIN_BYTE_IMAGES_H

#include "train/state.h"

/* The input of a run's programs that is an image of the run's preprocessing; NULL = none. */
const sx_model_input *sx_byte_image(const sx_run_info *info);

/* Whether all of the data sets are unbatched images that can be fed as bytes in that mode. */
bool sx_can_feed_bytes(const sx_trainer *t, sx_mode mode, sx_dataset *const *data, int n);

/* Makes the mode's program one that is fed bytes, or floats; it is built again if it was not. */
SX_MUST_USE sx_status sx_trainer_feed_bytes(sx_trainer *t, sx_mode mode, bool bytes);

#endif
