import ArgumentParser
import HoldfastDevice

/// Where the device is: in a folder, or in the image of a microcontroller's flash.
struct DeviceOptions: ParsableArguments {
  @Option(help: "The device's folder.", completion: .directory)
  var dir: String?

  @Option(help: "In place of a folder: the image of a microcontroller's flash.", completion: .file())
  var firmware: String?

  enum Place {
    case folder(String)
    case image(String)
  }

  func place() throws(Failure) -> Place {
    switch (dir, firmware) {
    case (let dir?, nil): return .folder(dir)
    case (nil, let firmware?): return .image(firmware)
    case (nil, nil):
      throw Failure(.usage, "which device is missing", hint: "give its folder with --dir, or its image with --firmware")
    case (_?, _?): throw Failure(.usage, "a device is in a folder or in an image", hint: "give --dir or --firmware")
    }
  }

  /// The folder, for what cannot be done with an image, as `reason` says.
  func folder(because reason: String) throws(Failure) -> String {
    switch try place() {
    case .folder(let path): return path
    case .image: throw Failure(.usage, "--firmware does not go with this: \(reason)", hint: "it is for --dir")
    }
  }
}

/// A verb of a device's owner, which does the same with a folder and an image.
protocol OwnerVerb: Verb {
  var device: DeviceOptions { get }
  /// Looks at the arguments, before anything is opened.
  func check() throws(Failure)
  func perform<Owned: OwnedDevice>(on owned: Owned) throws(Failure)
}

extension OwnerVerb {
  func check() throws(Failure) {}

  mutating func perform() throws(Failure) {
    try check()
    try performAtPlace()
  }

  /// Opens the device, wherever it is, and performs on it.
  func performAtPlace() throws(Failure) {
    switch try device.place() {
    case .folder(let path): try perform(on: DeviceFolder.opened(path))
    case .image(let path): try perform(on: FirmwareImage.opened(path))
    }
  }
}
