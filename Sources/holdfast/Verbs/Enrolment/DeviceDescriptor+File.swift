import HoldfastKeys

extension DeviceDescriptor {
  /// Reads a descriptor; `-` is standard input.
  init(file path: String) throws(Failure) {
    let bytes = try Input.read(path, limit: 8192)
    do throws(KeyFault) { try self.init(json: bytes) } catch {
      guard error != .unexpected else {
        throw Failure(
          .malformed, "\(path) is not a device descriptor", hint: "it is printed by holdfast device show --json")
      }
      throw Failure(error, path: path)
    }
  }
}
