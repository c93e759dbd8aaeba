#include "placement/designator.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sardonyx;

namespace {

DeviceDescription device(DeviceType type, std::string vendor = "", std::uint32_t vendor_id = 0,
                         std::optional<std::uint32_t> ordinal = {}) {
  DeviceDescription made;
  made.type = type;
  made.vendor = std::move(vendor);
  made.vendor_id = vendor_id;
  made.ordinal = ordinal;
  return made;
}

DeviceDescription gpu(std::uint32_t ordinal) { return device(DeviceType::Gpu, "", 0, ordinal); }

const ProviderDevices kCpu{"CPUExecutionProvider", {device(DeviceType::Cpu)}};
const ProviderDevices kVino{"OpenVINOExecutionProvider", {device(DeviceType::Cpu, "Intel")}};
const ProviderDevices kCuda{"CUDAExecutionProvider", {}};
const ProviderDevices kDml{"DmlExecutionProvider", {}};
const ProviderDevices kNpu{"SomeNpu", {device(DeviceType::Npu)}};

/// The index, or -1.
int index(std::string_view designator, const std::vector<ProviderDevices>& providers,
          DesignatorMode mode = DesignatorMode::Compatible) {
  const DesignatorMatch match = resolve_designator(designator, providers, mode);
  CHECK(match.provider.has_value() == match.why_not.empty());
  return match.provider ? static_cast<int>(*match.provider) : -1;
}

std::string why(std::string_view designator, const std::vector<ProviderDevices>& providers,
                DesignatorMode mode = DesignatorMode::Compatible) {
  return resolve_designator(designator, providers, mode).why_not;
}

}  // namespace

TEST_CASE("cpu is the provider of that name, else one on such a device") {
  CHECK(index("cpu", {kNpu, kCpu}) == 1);
  CHECK(index("CPU", {kNpu, kCpu}) == 1);
  // Nodes move away from another provider on the same device.
  CHECK(index("cpu", {kVino, kCpu}) == 1);
  CHECK(index("cpu", {kNpu, kVino}) == 1);
  CHECK(index("cpu", {kNpu}) == -1);
}

TEST_CASE("gpu is a type, or CUDA or DML by name") {
  CHECK(index("gpu", {kCpu, {"Any", {gpu(0)}}}) == 1);
  CHECK(index("gpu", {kCpu, kCuda}) == 1);
  CHECK(index("gpu", {kCpu, {"CudaPluginExecutionProvider", {}}}) == 1);
  CHECK(index("Gpu", {kCpu, kDml}) == 1);
  CHECK(index("gpu", {kCpu, kNpu}) == -1);
}

TEST_CASE("gpu with a number goes by the ordinal") {
  const std::vector<ProviderDevices> two = {{"V", {gpu(0)}}, {"V", {gpu(1)}}, kCpu};
  CHECK(index("gpu:0", two) == 0);
  CHECK(index("gpu:1", two) == 1);
  CHECK(index("GPU:1", two) == 1);
  CHECK(index("gpu:2", two) == -1);
  CHECK(index("gpu:99999999999", two) == -1);
  CHECK(index("gpu:", two) == -1);
  CHECK(why("gpu:2", two) ==
        "gpu number 2 is not in the session, but 0, 1; which device V takes is set by its option "
        "'device_id'");
  const std::vector<ProviderDevices> silent = {{"V", {device(DeviceType::Gpu)}}, kCpu};
  CHECK(index("gpu:0", silent) == -1);
  CHECK(why("gpu:0", silent).find("does not report the number") != std::string::npos);
  // CUDA has no device here that could have a number.
  CHECK(index("gpu:0", {kCuda, kCpu}) == -1);
}

TEST_CASE("gpu with a vendor goes by its word, its number, or CUDA by name") {
  const auto one = [](std::string vendor, std::uint32_t id) {
    return std::vector<ProviderDevices>{kCpu, {"V", {device(DeviceType::Gpu, vendor, id)}}};
  };
  CHECK(index("gpu:nvidia", one("NVIDIA", 0)) == 1);
  CHECK(index("gpu:NVIDIA", one("NVIDIA Corporation", 0)) == 1);
  CHECK(index("gpu:nvidia", one("", 0x10de)) == 1);
  CHECK(index("gpu:amd", one("", 0x1002)) == 1);
  CHECK(index("gpu:intel", one("", 0x8086)) == 1);
  CHECK(index("gpu:intel", one("", 0x10de)) == -1);
  CHECK(index("gpu:nvidia", {kCpu, kCuda}) == 1);
  CHECK(index("gpu:amd", {kCpu, kCuda}) == -1);
  CHECK(index("gpu:contoso", one("Contoso", 0)) == 1);
  CHECK(index("gpu:intel", {kCpu, {"V", {device(DeviceType::Npu, "Intel", 0x8086)}}}) == -1);
}

TEST_CASE("accelerator is all that is not known to be a processor") {
  CHECK(index("accelerator", {kCpu, kNpu}) == 1);
  CHECK(index("accelerator", {kCpu, {"V", {gpu(0)}}}) == 1);
  CHECK(index("accelerator", {kCpu, {"V", {device(DeviceType::Unknown)}}}) == 1);
  CHECK(index("accelerator", {kCpu, {"V", {}}}) == 1);
  CHECK(index("accelerator", {kCpu, kVino}) == -1);
}

TEST_CASE("npu and fpga are types; two providers count as npu by name") {
  CHECK(index("npu", {kCpu, kNpu}) == 1);
  CHECK(index("npu", {kCpu, {"QNNExecutionProvider", {}}}) == 1);
  CHECK(index("npu", {kCpu, {"VitisAIExecutionProvider", {}}}) == 1);
  CHECK(index("npu", {kCpu, kVino}) == -1);
  CHECK(index("fpga", {kCpu, {"V", {device(DeviceType::Fpga)}}}) == 1);
  CHECK(index("fpga", {kCpu, kNpu}) == -1);
}

TEST_CASE("cuda is the provider of that name, else what gpu:nvidia takes") {
  const ProviderDevices other{"V", {device(DeviceType::Gpu, "NVIDIA")}};
  CHECK(index("cuda", {other, kCuda}) == 1);
  CHECK(index("cuda", {other, {"CudaPluginExecutionProvider", {}}}) == 1);
  CHECK(index("cuda", {kCpu, other}) == 1);
  CHECK(index("cuda", {kCpu, {"V", {device(DeviceType::Gpu, "Intel")}}}) == -1);
  CHECK(index("dml", {kCpu, kDml}) == 1);
  CHECK(index("dml", {kCpu, other}) == -1);
}

TEST_CASE("a provider's name is compared whole and with case") {
  CHECK(index("OpenVINOExecutionProvider", {kCpu, kVino}) == 1);
  CHECK(index("openvinoexecutionprovider", {kCpu, kVino}) == -1);
  CHECK(index("Odd:Name", {kCpu, {"Odd:Name", {}}}) == 1);
  CHECK(index("Odd", {kCpu, {"Odd:Name", {}}}) == -1);
  CHECK(why("OpenVINOExecutionProvder", {kCpu, kVino}) ==
        "'OpenVINOExecutionProvder' is neither a kind of device nor a provider of the session "
        "(nearest: 'OpenVINOExecutionProvider'); there is CPUExecutionProvider (cpu), "
        "OpenVINOExecutionProvider (cpu of Intel)");
}

TEST_CASE("the own option numbers devices of every kind and those without ordinal") {
  const std::vector<ProviderDevices> silent = {
      {"V", {device(DeviceType::Gpu)}}, {"V", {device(DeviceType::Gpu)}}, kNpu, kNpu, kCpu};
  CHECK(index("gpu:1", silent, DesignatorMode::Extended) == 1);
  CHECK(index("gpu:2", silent, DesignatorMode::Extended) == -1);
  CHECK(index("npu:1", silent, DesignatorMode::Extended) == 3);
  CHECK(index("npu:1", silent) == -1);
  CHECK(index("V:1", silent, DesignatorMode::Extended) == 1);
  CHECK(index("V:1", silent) == -1);
  const std::vector<ProviderDevices> numbered = {{"V", {gpu(3)}}, {"V", {gpu(1)}}};
  CHECK(index("gpu:0", numbered, DesignatorMode::Extended) == -1);
  CHECK(index("gpu:1", numbered, DesignatorMode::Extended) == 1);
  CHECK(index("V:3", numbered, DesignatorMode::Extended) == 0);
}

TEST_CASE("designators of any length and bytes get a short answer") {
  const std::string huge(1U << 20, '\xff');
  CHECK(why(huge, {kCpu}).size() < 500);
  CHECK(why("gpu:" + huge, {kCpu}).size() < 500);
  CHECK(index("", {kCpu}) == -1);
  CHECK(index("cpu", {}) == -1);
}
