import ArgumentParser
import HoldfastCore
import HoldfastDevice
import HoldfastFormats

struct DeviceBulletin: Verb {
  static let configuration = CommandConfiguration(
    commandName: "bulletin",
    abstract: "Take an issuer's bulletin from a file. A running device applies it at once.",
    discussion: """
      Provers deliver bulletins by themselves. This command is for an owner who brings one on a storage medium. The device checks \
      it in the same way.
      """,
    examples: ["holdfast device bulletin --dir lock bulletin.cose"])

  @OptionGroup var device: DeviceOptions
  @OptionGroup var output: OutputOptions

  @Argument(help: "A file with a bulletin, as service bulletin writes it.", completion: .file())
  var file: String

  mutating func perform() throws(Failure) {
    let path = try device.folder(because: "a board takes bulletins from provers only")
    let bytes = try Input.read(file, limit: Bulletin.maximumByteCount)
    let folder = try DeviceFolder.opened(path)
    let ledger = try folder.ledger()
    let result: BulletinResult
    do throws(DeviceFolderFault) { result = try folder.take(bulletin: bytes, in: ledger) } catch {
      throw Failure(error, folder: path)
    }
    switch result {
    case .taken, .known:
      if output.json {
        Console.result(.object([("result", .string(result.name))]))
      } else {
        Console.result(result == .taken ? "bulletin taken" : "the device has this bulletin or a newer one")
      }
    case .notAddressed:
      throw Failure(
        .denied, "the bulletin is for other devices",
        hint: "device show says the id of the device, and device.json the names of its groups")
    case .missed: throw Failure(.denied, "the device needs the bulletins before this one")
    case .full:
      throw Failure(
        .denied, "the device has no room for the bulletin",
        hint: "a bulletin that raises the generation needs no room: holdfast service bulletin --generation")
    case .refused, .busy:
      throw Failure(
        .malformed, "the device does not accept the bulletin: its signature, its key, its time or its claims",
        hint: "trust the issuer's key first; keys are introduced only by those that policy.json names in introducers")
    }
  }
}

extension BulletinResult {
  /// The name of the result. Source: docs/couriers.md, Rules for the device.
  var name: String { "\(self)" }
}

/// Parses the names of groups in the values of an option.
func groupNames(_ texts: [String]) throws(Failure) -> [BoundedText<32>] {
  guard texts.count <= BulletinList.groupLimit, Set(texts).count == texts.count else {
    throw Failure(.usage, "a device belongs to at most \(BulletinList.groupLimit) groups, each named once")
  }
  var names: [BoundedText<32>] = []
  for text in texts {
    guard let name = BoundedText<32>(text), !name.isEmpty else {
      throw Failure(.usage, "the name of a group must have 1 to 32 bytes")
    }
    names.append(name)
  }
  return names
}
