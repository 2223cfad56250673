/** What {@link SHARED_MEMORY_PORTS} loads. */

export { memoryDomain } from '../shm-port/memory-domain.js';
export { openShmPort } from '../shm-port/shm-port.js';
