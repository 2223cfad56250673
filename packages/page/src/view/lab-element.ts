/** `<rocev2-lab scene="livelock">` shows a scene in any page: the attributes are those of the address, and `height`. */

const HOME = new URL('./', (document.currentScript as HTMLScriptElement).src);
const HEIGHT = '900';

class LabElement extends HTMLElement {
  connectedCallback(): void {
    const { scene = { value: 'livelock' }, height = { value: HEIGHT } } = Object.fromEntries(
      [...this.attributes].map((attribute) => [attribute.name, attribute]),
    );
    const others = [...this.attributes].filter(
      ({ name }) => !['scene', 'height', 'style', 'class', 'id'].includes(name),
    );
    const query = new URLSearchParams(others.map(({ name, value }) => [name, value]));
    const frame = document.createElement('iframe');
    frame.src = new URL(`index.html?embed#${scene.value}?${query}`, HOME).href;
    frame.title = `rocev2: ${scene.value}`;
    frame.height = height.value;
    frame.loading = 'lazy';
    frame.style.cssText = 'width: 100%; border: 0;';
    this.replaceChildren(frame);
  }
}

customElements.define('rocev2-lab', LabElement);
