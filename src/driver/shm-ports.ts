export { memoryDomain } from '../port/shm/memory-domain.js';
export { Segment } from '../port/shm/segment.js';
export { openShmPort } from '../port/shm/shm-port.js';
export { memoryMapping } from './system-memory-mapping.js';
