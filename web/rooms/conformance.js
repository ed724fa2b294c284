/** The Conformance room. */

/** @param {HTMLElement} section @param {{say: (text: string, tone?: string) => void}} shell */
export function mount(section, shell) {
  void section;
  void shell;
}
