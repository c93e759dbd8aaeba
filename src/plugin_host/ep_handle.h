#pragma once

#include <memory>

#include "plugin_host/library.h"

namespace sardonyx::plugin_host {

/// An OrtEp, released when nobody needs it any more: its provider, and memory that its allocators
/// made. Keeps the library open.
struct EpHandle {
  EpHandle(std::shared_ptr<const Library> the_library, OrtEpFactory& the_factory)
      : library(std::move(the_library)), factory(the_factory) {}
  ~EpHandle();
  EpHandle(const EpHandle&) = delete;
  EpHandle& operator=(const EpHandle&) = delete;

  std::shared_ptr<const Library> library;
  OrtEpFactory& factory;
  OrtEp* ep = nullptr;
};

}  // namespace sardonyx::plugin_host
