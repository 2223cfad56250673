/**
 * Internals of driver that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { chooseCipher } from '../driver/cipher/cipher-choice.js';
export { chooseCrc32 } from '../driver/crc32/crc32-choice.js';
export { offerCrc32c } from '../driver/crc32/crc32c-choice.js';
export { loadExtensions, loadedExtensions } from '../driver/extensions.js';
export { lockFile } from '../driver/file-calls.js';
export { InlineEngine } from '../driver/inline-engine.js';
export { makeFolder, removeIfEmpty, unusableFolder } from '../driver/make-folder.js';
export { openPort, type PortOptions } from '../driver/open-port.js';
export { chooseIo, PORT_IOS, type PortIo } from '../driver/port-io.js';
export { readPrivateFile } from '../driver/private-file.js';
export { SHARED_MEMORY_PORTS, type SharedMemoryPorts } from '../driver/shm-loader.js';
export { nowNs, SYSTEM_CLOCK, timeoutMs, wallClockNs, wallMs } from '../driver/system-clock.js';
export { systemRandom } from '../driver/system-random.js';
export { cleanVectorState } from '../driver/vector-state.js';
