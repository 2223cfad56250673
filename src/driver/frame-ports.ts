export { openFramePort } from '../port/frame/udp-frame-port.js';
