// A CUDA device for a build of torch without CUDA: guards and hooks that do nothing, so tensors that only report the
// device pass through the dispatcher and through autograd. It must be loaded before torch looks for hooks.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace at {
struct CUDAHooks : public CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
};
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at

namespace c10::impl {
struct CudaGuard : public NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device exchangeDevice(Device) const override { return Device(DeviceType::CUDA, 0); }
  Device getDevice() const override { return Device(DeviceType::CUDA, 0); }
  Stream getStream(Device) const noexcept override {
    return Stream(Stream::DEFAULT, Device(DeviceType::CUDA, 0));
  }
  Stream exchangeStream(Stream) const noexcept override {
    return Stream(Stream::DEFAULT, Device(DeviceType::CUDA, 0));
  }
};
C10_REGISTER_GUARD_IMPL(CUDA, CudaGuard);
}  // namespace c10::impl
