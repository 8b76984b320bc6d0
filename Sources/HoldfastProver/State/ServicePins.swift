import HoldfastCore
import HoldfastFormats
import HoldfastLinux

/// The pins that a user once gave for online services, in the file `services.json` of the state folder. They are required from
/// then on.
extension ProverFolder {
  static let servicesName = "services.json"
  private static let servicesByteLimit = 65_536

  /// Returns an object whose members are the addresses of services, each with an array of its pins.
  ///
  /// - Throws: `damaged`, `file`. Without the file, there are no pins.
  package func servicePins() throws(StateFolderFault) -> JSONValue {
    let path = "\(path)/\(Self.servicesName)"
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(at: path, limit: Self.servicesByteLimit, requirements: [.noSymbolicLink, .owned])
    } catch {
      if error.kind == .notFound { return .object([]) }
      throw .file(error)
    }
    guard let value = try? JSONValue(parsing: bytes, byteLimit: Self.servicesByteLimit),
      value["version"]?.number == 1, let pins = value["pins"], let members = pins.members,
      members.allSatisfy({ $0.1.elements?.first?.text != nil })
    else { throw .damaged(path: path) }
    return pins
  }

  /// Keeps pins for services, in place of those that were kept for them.
  ///
  /// - Throws: `damaged`, `busy`, `file`.
  package func keep(pins: JSONValue, of services: [String]) throws(StateFolderFault) {
    try takingTurns(in: path) { () throws(StateFolderFault) in
      var members = try servicePins().members ?? []
      members.removeAll { services.contains($0.0) }
      for service in services { members.append((service, pins)) }
      let bytes = JSONValue.object([("version", .integer(1)), ("pins", .object(members))]).pretty()
      do throws(FileError) {
        try Files.writeFileAtomically(bytes, at: "\(path)/\(Self.servicesName)", overwrite: true)
      } catch { throw .file(error) }
    }
  }
}
