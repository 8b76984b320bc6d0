import ArgumentParser

struct Device: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make, show and serve a device: the embedded verifier.",
    subcommands: [
      DeviceInit.self, DeviceShow.self, DeviceTrust.self, DevicePolicyShow.self, DeviceFloor.self, DeviceUser.self,
      DeviceServe.self, DeviceBridge.self, DeviceAudit.self, DeviceReset.self,
    ])
}
