import ArgumentParser

struct Device: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make, show and serve a device: the embedded verifier.",
    examples: [
      "holdfast device init --dir lock",
      "holdfast device serve --dir lock --listen unix:/run/lock.sock",
    ],
    subcommands: [
      DeviceInit.self, DeviceShow.self, DeviceTrust.self, DevicePolicyShow.self, DeviceFloor.self, DeviceUser.self,
      DeviceServe.self, DeviceBridge.self, DeviceAudit.self, DeviceReset.self,
    ])
}
