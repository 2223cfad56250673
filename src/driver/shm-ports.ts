/** What {@link SHARED_MEMORY_PORTS} loads. */

export { openShmPort } from '../shm-port/shm-port.js';
