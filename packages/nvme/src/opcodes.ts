/** Numbers of commands, features, log pages and properties (NVMe base specification 2.0, NVM command set 1.0). */

/** NQN of every discovery subsystem. */
export const DISCOVERY_NQN = 'nqn.2014-08.org.nvmexpress.discovery';
/** Port of NVMe over Fabrics, of RDMA and of TCP (IANA). */
export const NVME_PORT = 4420;
/** Longest NQN in bytes. */
export const NQN_BYTES_MAX = 223;

/** Commands of fabrics, on every queue. */
export const OP_FABRICS = 0x7f;
/** Fabrics command types. */
export const FCTYPE = {
  PROPERTY_SET: 0x00,
  CONNECT: 0x01,
  PROPERTY_GET: 0x04,
  AUTHENTICATION_SEND: 0x05,
  AUTHENTICATION_RECEIVE: 0x06,
} as const;

/** Commands of the admin queue. */
export const ADMIN = {
  GET_LOG_PAGE: 0x02,
  IDENTIFY: 0x06,
  ABORT: 0x08,
  SET_FEATURES: 0x09,
  GET_FEATURES: 0x0a,
  ASYNC_EVENT_REQUEST: 0x0c,
  KEEP_ALIVE: 0x18,
} as const;

/** Commands of I/O queues (NVM command set). */
export const IO = {
  FLUSH: 0x00,
  WRITE: 0x01,
  READ: 0x02,
  COMPARE: 0x05,
  WRITE_ZEROES: 0x08,
  DATASET_MANAGEMENT: 0x09,
  VERIFY: 0x0c,
  RESERVATION_REGISTER: 0x0d,
  RESERVATION_REPORT: 0x0e,
  RESERVATION_ACQUIRE: 0x11,
  RESERVATION_RELEASE: 0x15,
} as const;

/** Types of reservations: who may write, or use the namespace at all, beside the holder. */
export const RESERVATION_TYPE = {
  WRITE_EXCLUSIVE: 1,
  EXCLUSIVE_ACCESS: 2,
  WRITE_EXCLUSIVE_REGISTRANTS: 3,
  EXCLUSIVE_ACCESS_REGISTRANTS: 4,
  WRITE_EXCLUSIVE_ALL: 5,
  EXCLUSIVE_ACCESS_ALL: 6,
} as const;

/** Data structures of Identify (CNS). */
export const CNS = {
  NAMESPACE: 0x00,
  CONTROLLER: 0x01,
  ACTIVE_NAMESPACES: 0x02,
  NAMESPACE_DESCRIPTORS: 0x03,
  IO_NAMESPACE: 0x05,
  IO_CONTROLLER: 0x06,
  IO_ACTIVE_NAMESPACES: 0x07,
  INDEPENDENT_NAMESPACE: 0x08,
} as const;

/** Features of a controller. */
export const FEATURE = {
  ARBITRATION: 0x01,
  POWER_MANAGEMENT: 0x02,
  TEMPERATURE_THRESHOLD: 0x04,
  ERROR_RECOVERY: 0x05,
  VOLATILE_WRITE_CACHE: 0x06,
  NUMBER_OF_QUEUES: 0x07,
  ASYNC_EVENT_CONFIGURATION: 0x0b,
  KEEP_ALIVE_TIMER: 0x0f,
  HOST_IDENTIFIER: 0x81,
  RESERVATION_NOTIFICATION_MASK: 0x82,
  RESERVATION_PERSISTENCE: 0x83,
} as const;

/** Log pages. */
export const LOG = {
  ERROR: 0x01,
  SMART: 0x02,
  FIRMWARE: 0x03,
  CHANGED_NAMESPACES: 0x04,
  EFFECTS: 0x05,
  ANA: 0x0c,
  DISCOVERY: 0x70,
  RESERVATION_NOTIFICATION: 0x80,
} as const;

/** Offsets of controller properties. */
export const PROPERTY = { CAP: 0x00, VS: 0x08, CC: 0x14, CSTS: 0x1c } as const;

/** All namespaces: what `nsid` says where a command is about the whole controller. */
export const NSID_ALL = 0xffff_ffff;
