import COpenSSL
import HoldfastCore

/// One of libcrypto's key derivation functions with one hash, its context kept from call to call.
struct KeyDerivation: ~Copyable {
  private let context: Handle
  private let digestName: StaticString

  enum Function {
    /// Extract and expand. Source: RFC 5869 §2.
    case hkdf
    /// One-step derivation by a hash, as JOSE's Concat KDF. Source: SP 800-56C §4.1; RFC 7518 §4.6.2.
    case concatenation
  }

  init(_ function: Function, digestName: StaticString = "SHA256") throws(CryptographyFailure) {
    let name =
      switch function {
      case .hkdf: "HKDF"
      case .concatenation: "SSKDF"
      }
    let algorithm = try unsafe Handle(EVP_KDF_fetch(nil, name, nil), freedBy: EVP_KDF_free)
    let context = try unsafe Handle(EVP_KDF_CTX_new(algorithm.pointer), freedBy: EVP_KDF_CTX_free)
    self.context = context
    self.digestName = digestName
  }

  /// Fills `output`; an empty `salt` is the same as none.
  mutating func derive(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, into output: inout MutableSpan<UInt8>
  ) throws(CryptographyFailure) {
    let result = unsafe withParameters(inputKey: inputKey, salt: salt, info: info) { parameters in
      unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe EVP_KDF_derive(context.pointer, output.baseAddress, output.count, parameters)
      }
    }
    unsafe EVP_KDF_CTX_reset(context.pointer)
    guard result == 1 else {
      wipe(&output)
      throw failure()
    }
  }

  private func withParameters(
    inputKey: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, _ body: (UnsafePointer<OSSL_PARAM>?) -> CInt
  ) -> CInt {
    unsafe inputKey.withUnsafeBufferPointer { inputKey in
      unsafe salt.withUnsafeBufferPointer { salt in
        unsafe info.withUnsafeBufferPointer { info in
          var parameters = unsafe InlineArray<5, OSSL_PARAM>(repeating: OSSL_PARAM_construct_end())
          unsafe parameters[0] = utf8Parameter("digest", digestName)
          unsafe parameters[1] = octetParameter("key", inputKey)
          var next = 2
          if !salt.isEmpty {
            unsafe parameters[next] = octetParameter("salt", salt)
            next += 1
          }
          if !info.isEmpty { unsafe parameters[next] = octetParameter("info", info) }
          return unsafe parameters.span.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
        }
      }
    }
  }
}

/// A parameter that points at `bytes`; an empty one points at something, because libcrypto takes null for absent.
func octetParameter(_ name: StaticString, _ bytes: UnsafeBufferPointer<UInt8>) -> OSSL_PARAM {
  let start = unsafe bytes.baseAddress ?? name.utf8Start
  return unsafe OSSL_PARAM_construct_octet_string(
    cString(name), UnsafeMutableRawPointer(mutating: start), bytes.count)
}

/// A parameter that points at `text`.
func utf8Parameter(_ name: StaticString, _ text: StaticString) -> OSSL_PARAM {
  unsafe OSSL_PARAM_construct_utf8_string(cString(name), UnsafeMutablePointer(mutating: cString(text)), 0)
}

/// The zero-terminated bytes of a literal, which live as long as the process.
func cString(_ text: StaticString) -> UnsafePointer<CChar> {
  unsafe UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}
