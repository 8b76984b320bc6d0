/// One change of a disk below a watched folder. Files and folders are numbered as they come; the watched folder is 0.
package enum DiskChange: Sendable {
  case makeFile(Int, DiskName)
  case makeFolder(Int, DiskName)
  case link(Int, DiskName)
  /// Within one folder, at once; from folder to folder it would be two changes.
  case rename(Int, from: DiskName, to: String)
  /// Two entries of one folder exchange their names, at once.
  case exchange(Int, DiskName, with: Int, String)
  case unlink(DiskName)
  case write(Int, offset: Int, bytes: [UInt8])
  case truncate(Int, length: Int)
  /// The file's contents, or the folder's names, have been brought to the disk.
  case synchronize(Int)
  /// That failed: the system says so once, and forgets which contents it has not written.
  case synchronizeFailed(Int)
}

/// A name in a folder.
package struct DiskName: Sendable, Hashable {
  let folder: Int
  let text: String
}
