import Glibc
import HoldfastCore
import HoldfastOpenSSL

extension DeviceSecret {
  /// Reads the secret, and makes it first where there is none.
  ///
  /// It appears whole or not at all, and durably; of two processes that make it at once, both get the same. What is there
  /// is never replaced, however wrong it is.
  func readOrCreate() throws(DeviceSecretFault) -> Secret<32> {
    do throws(DeviceSecretFault) {
      return try read()
    } catch .missing {
      try makeFolders()
      let folder = try openFolder()
      try create(in: folder)
      return try read(in: folder)
    }
  }

  /// Makes the folder, and those above it, for this user alone; the names of new ones are on the disk when this returns.
  private func makeFolders() throws(DeviceSecretFault) {
    var path = ""
    for piece in folder.split(separator: "/") {
      let above = path + "/"
      path = above + piece
      if unsafe mkdir(path, 0o700) == 0 {
        do throws(SystemFault) { try OpenFile(above, flags: O_RDONLY | O_DIRECTORY).synchronize() } catch {
          throw .system(error.code)
        }
      } else if errno != EEXIST {
        throw .system(errno)
      }
    }
  }

  /// Writes a secret under a name of its own and gives it the right name, unless another process did so first.
  private func create(in folder: borrowing OpenFile) throws(DeviceSecretFault) {
    let folderDescriptor = folder.descriptor
    let temporary = "\(name).\(getpid()).\(UInt64.random(in: 0 ... .max))"
    do throws(SystemFault) {
      let file = try OpenFile(temporary, in: folder, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
      try fill(file)
      let linked = unsafe linkat(folderDescriptor, temporary, folderDescriptor, name, 0)
      guard linked == 0 || errno == EEXIST else { throw SystemFault.last }
      _ = unsafe unlinkat(folderDescriptor, temporary, 0)
      try folder.synchronize()
    } catch {
      _ = unsafe unlinkat(folderDescriptor, temporary, 0)
      throw .system(error.code)
    }
  }

  private func fill(_ file: borrowing OpenFile) throws(SystemFault) {
    var random = SystemRandom()
    let secret: Secret<32>
    do throws(RandomFailure) { secret = try random.secret() } catch { throw SystemFault(code: EAGAIN) }
    try secret.withBytes { (bytes: Span<UInt8>) throws(SystemFault) in try file.write(bytes) }
    try file.synchronize()
  }
}
