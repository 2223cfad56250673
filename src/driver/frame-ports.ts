export { prioritiesOfDscps } from '../packet/dscp-priority.js';
export { openFramePort } from '../port/frame/udp-frame-port.js';
