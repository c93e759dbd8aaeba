#pragma once

#include <memory>

#include "plugin/virtual_devices.h"

namespace sardonyx::plugin {

/// What the host asks a device for, as its structs; each is released by the function of its name in
/// the interface. `devices` live as long as the factory.

/// Memory of the device.
OrtAllocator* make_allocator(const Host& host, VirtualDevice& device);
void release_allocator(OrtAllocator* allocator);

/// Copies between the devices and ordinary memory.
OrtDataTransferImpl* make_data_transfer(const Host& host, const VirtualDevices& devices);

/// A queue of work. Copies are done when they are asked for, so that there is never any left.
OrtSyncStreamImpl* make_stream(const Host& host);

/// Copies the bytes of one tensor into another, wherever they are.
/// Errors   InvalidArgument when the sizes differ.
Status copy_value(const Host& host, const VirtualDevices& devices, const OrtValue& source,
                  OrtValue& target);

}  // namespace sardonyx::plugin
