import HoldfastCore

/// Why a measurement, or a proof of it, could not be made. Nothing is ever skipped instead.
public enum MeasurementError: Error, Equatable {
  /// A nonce is not 16 bytes.
  case nonceLength
  /// The bytes are not a measurement configuration.
  case malformedConfiguration(EncodingFault)
  /// No key that is built in has the id that the configuration names.
  case unknownKey
  /// The configuration names a component that this platform does not have, or has in the other scope.
  case unknownComponent
  /// A source could not be read; `code` is the system's error number.
  case unreadable(MeasuredSource, code: Int32)
  /// A source was read, but it is not in the form that the kernel gives it.
  case malformed(MeasuredSource)
  /// The device secret could not be used.
  case deviceSecret(DeviceSecretFault)
  /// What should go into evidence does not fit it.
  case evidence(EncodingFault)
  /// The cryptographic library or the random source failed.
  case cryptography
}

/// What a measurement reads.
public enum MeasuredSource: Sendable {
  /// The executable file, through `/proc/self/exe`.
  case executable
  /// `/proc/self/maps`.
  case memoryMap
  /// `/proc/self/mem`.
  case memory
  /// `/proc/self/pagemap`.
  case pageMap
  /// A file that code is mapped from.
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

/// Why the device secret could not be used.
public enum DeviceSecretFault: Error, Equatable {
  /// Neither `XDG_DATA_HOME` nor `HOME` is an absolute path.
  case noLocation
  /// It was not made yet, or is gone.
  case missing
  /// It is a link, a folder or something else that is not a plain file.
  case notPlainFile
  /// It belongs to another user.
  case wrongOwner
  /// Others may read or write it.
  case wrongMode
  /// It is not 32 bytes.
  case wrongSize
  /// Its folder is a link, belongs to another user or lets others in.
  case folderNotPrivate
  /// The system refused to read or write it, with this error number.
  case system(Int32)
}
