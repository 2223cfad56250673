"""The parts of the rig: real Linux Soft-RoCE peers in QEMU guests. Standard library only."""
