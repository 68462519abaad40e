/* All of Sextant's public interface. */
#ifndef SEXTANT_SEXTANT_H
#define SEXTANT_SEXTANT_H

#include <sextant/client.h>
#include <sextant/data.h>
#include <sextant/device.h>
#include <sextant/distribute.h>
#include <sextant/function.h>
#include <sextant/functions.h>
#include <sextant/function_train.h>
#include <sextant/graph.h>
#include <sextant/image.h>
#include <sextant/infer.h>
#include <sextant/log.h>
#include <sextant/model.h>
#include <sextant/nn.h>
#include <sextant/ops.h>
#include <sextant/runtime.h>
#include <sextant/saved_model.h>
#include <sextant/status.h>
#include <sextant/train.h>
#include <sextant/types.h>

#endif
