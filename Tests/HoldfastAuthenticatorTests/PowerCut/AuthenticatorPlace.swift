import HoldfastCore
import HoldfastLinux
import TestSupport

import HoldfastAuthenticator

/// Where an authenticator keeps its state.
enum AuthenticatorPlace: CaseIterable {
  /// In its own folder.
  case folder
  /// In a store of the app's own, here a file.
  case file

  func create(_ path: String) throws(AuthenticatorFault) -> Authenticator {
    switch self {
    case .folder: return try AuthenticatorFolder.create(at: path, cost: .test)
    case .file:
      do throws(FileError) { try Files.createPrivateDirectory(at: path) } catch { throw .folder(error) }
      return try open(path)
    }
  }

  func open(_ path: String) throws(AuthenticatorFault) -> Authenticator {
    switch self {
    case .folder: return try AuthenticatorFolder.open(at: path, cost: .test)
    case .file:
      var random = TestRandom(state: 7)
      return try Authenticator(store: try FileStore(path), cost: .test, random: &random)
    }
  }
}

/// A store in a file, as an app could write it.
struct FileStore: AuthenticatorStore {
  private let path: String

  init(_ folder: String) throws(AuthenticatorFault) {
    path = folder + "/state"
    // A write that was interrupted must not leave its bytes next to later ones.
    do throws(FileError) { try Files.removeTemporaries(inFolder: folder) } catch { throw .folder(error) }
  }

  func load() throws(AuthenticatorFault) -> [UInt8]? {
    do throws(FileError) { return try Files.readFile(at: path, limit: 1 << 22) } catch {
      if error.kind == .notFound { return nil }
      throw .folder(error)
    }
  }

  func replace(_ old: [UInt8]?, with new: [UInt8]) throws(AuthenticatorFault) {
    guard try load() == old else { throw .busy }
    do throws(FileError) { try Files.writeFileAtomically(new, at: path, overwrite: true) } catch {
      throw .folder(error)
    }
  }
}
