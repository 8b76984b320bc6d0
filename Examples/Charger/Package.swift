// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "Charger", dependencies: [.package(name: "holdfast", path: "../..")],
  targets: [
    .executableTarget(
      name: "Charger",
      dependencies: [
        .product(name: "HoldfastDevice", package: "holdfast"), .product(name: "HoldfastTransport", package: "holdfast"),
      ])
  ])
