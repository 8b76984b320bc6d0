#if !hasFeature(Embedded)
import HoldfastCore

/// Reads the groups of a provision: `[list, [name …]]`. The list is that of a key of which the device has no bulletins.
///
/// - Parameters:
///   - reader: the provision, at the groups.
///   - device: the id of the device.
///   - cryptography: an implementation of the primitives.
/// - Returns: 1 to 8 names, each of 1 to 32 bytes, and none twice.
/// - Throws: `unexpected` for other names, and for a list that is not exactly that of the device and these groups.
func readGroups<Crypto: Cryptography & ~Copyable>(
  _ reader: inout CBORReader, of device: DeviceID, using cryptography: inout Crypto
) throws(EncodingFault) -> [BoundedText<32>] {
  try reader.array(of: 2)
  let list = try BulletinList(&reader)
  var names: [BoundedText<32>] = []
  for _ in 0..<(try reader.arrayHead()) {
    let name = try reader.name()
    guard !name.isEmpty, !names.contains(name) else { throw .unexpected }
    names.append(name)
  }
  guard (1...BulletinList.groupLimit).contains(names.count),
    list == (try audiences(of: device, names, using: &cryptography))
  else { throw .unexpected }
  return names
}

/// Writes the same.
func writeGroups<Sink: ByteSink & ~Copyable, Crypto: Cryptography & ~Copyable>(
  _ groups: [BoundedText<32>], of device: DeviceID, into sink: inout Sink, using cryptography: inout Crypto
) throws(EncodingFault) where Sink.Failure == EncodingFault {
  try sink.appendCBOR(array: 2)
  try sink.append(EncodedBulletinList(try audiences(of: device, groups, using: &cryptography)).buffer.bytes)
  try sink.appendCBOR(array: groups.count)
  for name in groups { try sink.appendCBOR(text: name.bytes) }
}

private func audiences<Crypto: Cryptography & ~Copyable>(
  of device: DeviceID, _ groups: [BoundedText<32>], using cryptography: inout Crypto
) throws(EncodingFault) -> BulletinList {
  var rows = [BulletinList.Row(audience: AudienceID(device.bytes)!, number: 0)]
  for name in groups {
    do throws(CryptographyFailure) {
      rows.append(BulletinList.Row(audience: try audience(ofGroup: name, using: &cryptography), number: 0))
    } catch { throw .unexpected }
  }
  return BulletinList(rows)
}
#endif
