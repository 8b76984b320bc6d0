import HoldfastAuthenticator
import HoldfastCore
import HoldfastOpenSSL

/// The vectors `StateString`: lines with the state of an authenticator, under a passphrase.
///
/// Source: docs/authenticator.md, The state string.
struct StateStringVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let words = try test.node.member("passphrase")
    let passphrase: Passphrase
    let text = Array(try words.text().utf8)
    do throws(AuthenticatorFault) { passphrase = try Passphrase(text.span) } catch { throw words.fault(.wrongValue) }
    let line = try test.bytes("line")
    let expected = test.result == .invalid ? nil : try test.bytes("plaintext")
    var cryptography = OpenSSLCryptography()
    let opened: SecretBytes
    do throws(AuthenticatorFault) {
      opened = try StateString.open(line.span, under: passphrase, using: &cryptography)
    } catch { return .refused("\(error)") }
    guard let expected else { return .accepted }
    return array(opened.bytes) == expected ? .accepted : .differs("plaintext")
  }
}

/// The vectors `StateRecords`: the plaintext of a state string. Source: docs/authenticator.md, The state string.
struct StateRecordVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let plaintext = try test.bytes("plaintext")
    do throws(AuthenticatorFault) {
      let records = try Authenticator.records(in: plaintext.span)
      return Authenticator.state(of: records) == plaintext ? .accepted : .differs("plaintext, written again,")
    } catch { return .refused("\(error)") }
  }
}

/// The vectors `StoreState`: the bytes in an app's own store. Source: docs/authenticator.md, A store of the app's own.
struct StoreStateVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let bytes = try test.bytes("store")
    do throws(AuthenticatorFault) {
      return try StoreState(bytes).encoded() == bytes ? .accepted : .differs("store, written again,")
    } catch { return .refused("\(error)") }
  }
}

/// The vectors `UndoCode`: an undo code as a person types it. Source: docs/authenticator.md, Changing a PIN.
struct UndoCodeVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let text = Array(try test.node.member("code").text().utf8)
    let expected: FixedBytes<16>? = test.result == .invalid ? nil : try test.node.member("secret").fixed()
    do throws(AuthenticatorFault) {
      let code = try UndoCode(text.span)
      return expected == nil || publicBytes(code.bytes) == expected ? .accepted : .differs("secret")
    } catch { return .refused("\(error)") }
  }
}

/// The vectors `UndoCopy`: a secret from before a change of PIN, under an undo code and bound to a record.
///
/// Source: docs/authenticator.md, Changing a PIN.
struct UndoCopyVectors: ReplayableGroup {
  init(_ group: VectorNode, frame: VectorNode) {}

  func replay(_ test: VectorTest) throws(VectorFault) -> Outcome {
    let (member, copy) = (try test.node.member("record"), try test.bytes("copy"))
    let text = Array(try test.node.member("code").text().utf8)
    let expected = test.result == .invalid ? nil : try test.bytes("contents")
    let bytes = try member.bytes()
    let stored: StoredRecord
    do throws(EncodingFault) {
      var reader = CBORReader(bytes.span)
      stored = try StoredRecord(&reader)
    } catch { throw member.fault(.wrongValue) }
    var cryptography = OpenSSLCryptography()
    do throws(AuthenticatorFault) {
      let code = try UndoCode(text.span)
      guard let secret = UndoCopy.open(copy, for: stored.record, under: code, using: &cryptography) else {
        return .refused("it does not open")
      }
      return expected == nil || secret.contents == expected ? .accepted : .differs("contents")
    } catch { return .refused("\(error)") }
  }
}
