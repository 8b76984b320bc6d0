import HoldfastCore

/// A reason why a measurement, or a proof of it, could not be made. No component is ever skipped.
public enum MeasurementError: Error, Equatable {
  /// The nonce does not have 16 bytes.
  case nonceLength
  /// The bytes are not a measurement configuration.
  case malformedConfiguration(EncodingFault)
  /// No key of the app has the id that the configuration names.
  case unknownKey
  /// The configuration names a component that this platform does not have, or has in the other scope.
  case unknownComponent
  /// A source could not be read. `code` is the system's error number.
  case unreadable(MeasuredSource, code: Int32)
  /// A source was read, but does not have the kernel's format.
  case malformed(MeasuredSource)
  /// The device secret could not be used.
  case deviceSecret(HostSecretFault)
  /// A value does not fit into the evidence.
  case evidence(EncodingFault)
  /// The cryptographic library or the random source failed.
  case cryptography
}

/// A source that a measurement reads.
public enum MeasuredSource: Sendable {
  /// The executable file, through `/proc/self/exe`.
  case executable
  /// `/proc/self/maps`.
  case memoryMap
  /// `/proc/self/mem`.
  case memory
  /// `/proc/self/pagemap`.
  case pageMap
  /// A file from which code is mapped.
  case mappedFile
  /// `/proc/self/environ`.
  case environment
  /// `/proc/self/task`.
  case threads
  /// `/etc/ld.so.preload`.
  case preloadFile
  /// `/proc/net/tcp` and `/proc/net/tcp6`.
  case sockets
  /// `/etc/os-release`.
  case operatingSystem
  /// `/etc/machine-id`.
  case machineID
  /// `/proc/device-tree/serial-number`.
  case serialNumber
  /// `/proc/cpuinfo`.
  case processor
}

/// A reason why the device secret could not be used.
public enum HostSecretFault: Error, Equatable {
  /// Neither `XDG_DATA_HOME` nor `HOME` is an absolute path.
  case noLocation
  /// The secret does not exist: it was never created, or has been removed.
  case missing
  /// The path is a link, a folder or something else that is not a plain file.
  case notPlainFile
  /// The file belongs to another user.
  case wrongOwner
  /// Other users may read or write the file.
  case wrongMode
  /// The file does not have 32 bytes.
  case wrongSize
  /// The folder is a link, belongs to another user, or is accessible to others.
  case folderNotPrivate
  /// The system refused to read or write the file, with this error number.
  case system(Int32)
}
