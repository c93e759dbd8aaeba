#pragma once

#include "base/status.h"
#include "ep/device.h"

namespace sardonyx {

/// Copies the elements between tensors of one type and shape, wherever they lie: by the first
/// provider that moves tensors between the two memories, or, between two devices that no provider
/// connects, through the processor's.
/// Errors   Unsupported, naming both memories; those of the provider.
Status copy_across(const Providers& providers, const Tensor& from, Tensor& to);

/// A copy in that place (null: the processor's memory).
Result<Tensor> moved(const Providers& providers, const Tensor& tensor, const Place* to);

/// The datum itself when it lies there, or is no tensor; else a copy.
Result<Datum> datum_at(const Providers& providers, const Datum& datum, const Place* to);

/// What stands for an output that the caller wants in a device's memory without giving any: an
/// empty tensor of no type there.
Datum wanted_at(const Place* place);

}  // namespace sardonyx
