/** What {@link FRAME_PORTS} loads. */

export { openFramePort } from '../frame-port/frame-port.js';
