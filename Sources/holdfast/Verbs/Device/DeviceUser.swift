import ArgumentParser

struct DeviceUser: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "user", abstract: "Add, list, unlock and remove the users whose codes a device takes.",
    examples: [
      "holdfast device user add --dir lock alice",
      "holdfast device user list --dir lock",
    ],
    subcommands: [DeviceUserAdd.self, DeviceUserList.self, DeviceUserUnlock.self, DeviceUserRemove.self])
}
