export { openFramePort } from '../port/frame/frame-port.js';
