import HoldfastCore
import HoldfastFormats
import HoldfastLinux
import HoldfastOnline

/// The online services that the prover knows, in the file `services.json` of the state folder.
extension ProverFolder {
  static let servicesName = "services.json"

  /// Reads the services. Without the file, none is known.
  ///
  /// - Throws: ``KnownServicesFault``: also for a file that another user owns or may write.
  package func knownServices() throws(KnownServicesFault) -> KnownServices {
    let path = "\(path)/\(Self.servicesName)"
    let bytes: [UInt8]
    do throws(FileError) {
      bytes = try Files.readFile(
        at: path, limit: KnownServices.maximumByteCount, requirements: [.noSymbolicLink, .owned, .unwritableByOthers])
    } catch {
      if error.kind == .notFound { return KnownServices() }
      throw .folder(.file(error))
    }
    do throws(JSONMistake) { return try KnownServices(bytes) } catch { throw .damaged(path: path, error) }
  }

  /// Changes what is known of services. A power cut leaves the old file or the new one.
  ///
  /// - Throws: ``KnownServicesFault``; then nothing has changed.
  package func updateServices(_ change: (inout KnownServices) -> Void) throws(KnownServicesFault) {
    var fault: KnownServicesFault?
    do throws(StateFolderFault) {
      try takingTurns(in: path) { () throws(StateFolderFault) in
        do throws(KnownServicesFault) {
          let known = try knownServices()
          var changed = known
          change(&changed)
          let (bytes, path) = (changed.encoded, "\(path)/\(Self.servicesName)")
          guard bytes != known.encoded else { return }
          guard bytes.count <= KnownServices.maximumByteCount else {
            throw .folder(.file(FileError(.tooLarge, at: path)))
          }
          do throws(FileError) { try Files.writeFileAtomically(bytes, at: path, overwrite: true) } catch {
            throw .folder(.file(error))
          }
        } catch { fault = error }
      }
    } catch { throw .folder(error) }
    if let fault { throw fault }
  }
}

/// The reasons why the services that a prover knows cannot be read or changed.
package enum KnownServicesFault: Error {
  /// The file at `path` has a mistake, so nothing of it is used.
  case damaged(path: String, JSONMistake)
  /// The state folder is busy, or the file cannot be read or written.
  case folder(StateFolderFault)
}
