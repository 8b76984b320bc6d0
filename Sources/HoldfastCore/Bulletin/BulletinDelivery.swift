/// The end of a delivery: a judgement, or a forged signature.
package enum BulletinDelivery: Equatable {
  /// The result, which the peer learns.
  case judged(BulletinResult)
  /// The signature is wrong. The peer learns that the bulletin was refused.
  case forged

  /// The result that the peer learns.
  package var result: BulletinResult {
    switch self {
    case .judged(let result): result
    case .forged: .refused
    }
  }
}

/// Opens a bulletin, checks it in the order of docs/couriers.md, and lets the store take it.
///
/// A signature is checked only if the device does not have the bulletin yet and `allowance` has a check left.
///
/// - Parameters:
///   - bytes: the bulletin, signed or sealed.
///   - deviceID: the id of the device.
///   - key: the device's key; `keyID` is its id.
///   - store: the store of the device.
///   - policy: says which keys may introduce others, and how far ahead a bulletin may be issued.
///   - realClock: the real clock, in Unix seconds; nil if there is none.
///   - allowance: the peer's, or the owner's.
package func takeBulletin<
  Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Store: DeviceStore & ~Copyable,
  Rules: Policy & ~Copyable
>(
  _ bytes: Span<UInt8>, to deviceID: DeviceID, key: inout Key, keyID: KeyID, store: inout Store,
  policy: borrowing Rules, realClock: UInt64?, allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> BulletinDelivery {
  // A microcontroller has no room for opening a sealed bulletin. There, it is none.
  #if !hasFeature(Embedded)
  if Bulletin.isSealed(bytes) {
    return try takeBulletin(
      sealed: bytes, to: deviceID, key: &key, keyID: keyID, store: &store, policy: policy, realClock: realClock,
      allowance: &allowance, using: &cryptography)
  }
  #endif
  return try takeBulletin(
    signed: bytes, sealedTo: nil, store: &store, policy: policy, realClock: realClock, allowance: &allowance,
    using: &cryptography)
}

#if !hasFeature(Embedded)
private func takeBulletin<
  Crypto: Cryptography & ~Copyable, Key: AgreementKey & ~Copyable, Store: DeviceStore & ~Copyable,
  Rules: Policy & ~Copyable
>(
  sealed bytes: Span<UInt8>, to deviceID: DeviceID, key: inout Key, keyID: KeyID, store: inout Store,
  policy: borrowing Rules, realClock: UInt64?, allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> BulletinDelivery {
  guard bytes.count <= Bulletin.maximumByteCount else { return .judged(.refused) }
  // To read it is as much work as to check it.
  guard allowance.useCheck() else { return .judged(.busy) }
  var opener = TokenOpener()
  do throws(TokenFault) { try opener.decryptCOSE(bytes, key: &key, keyID: keyID, using: &cryptography) } catch {
    return .judged(.refused)
  }
  var check = MailAllowance.owner
  return try takeBulletin(
    signed: opener.plaintext.bytes, sealedTo: deviceID, store: &store, policy: policy, realClock: realClock,
    allowance: &check, using: &cryptography)
}
#endif

private func takeBulletin<
  Crypto: Cryptography & ~Copyable, Store: DeviceStore & ~Copyable, Rules: Policy & ~Copyable
>(
  signed bytes: Span<UInt8>, sealedTo device: DeviceID?, store: inout Store, policy: borrowing Rules,
  realClock: UInt64?, allowance: inout MailAllowance, using cryptography: inout Crypto
) throws(DeviceFault) -> BulletinDelivery {
  let bulletin: Bulletin
  do throws(EncodingFault) { bulletin = try Bulletin(bytes, sealedTo: device) } catch { return .judged(.refused) }
  guard let point = store.signingKey(bulletin.issuer) else { return .judged(.refused) }
  var list = EncodedBulletinList()
  guard try store.writeBulletins(of: bulletin.issuer, into: &list),
    let number = list.number(for: bulletin.claims.audience)?.value
  else { return .judged(.notAddressed) }
  if bulletin.claims.number <= number { return .judged(.known) }
  if bulletin.claims.predecessor > number { return .judged(.missed) }
  guard allowance.useCheck() else { return .judged(.busy) }
  let verified: VerifiedBulletin
  do throws(CryptographyFailure) { verified = try bulletin.verified(by: point, using: &cryptography) } catch {
    return .forged
  }
  let terms = BulletinTerms(
    latestIssue: latestIssue(
      floor: try store.clockFloor(), advanceSeconds: policy.maximumIssueAdvanceSeconds, realClock: realClock),
    mayIntroduce: policy.mayIntroduce(bulletin.issuer), realClock: realClock)
  return .judged(try store.take(verified, on: terms))
}
