import type { ButtonHTMLAttributes } from 'preact';

/** A button that does not send a form. */
export const Button = (attributes: ButtonHTMLAttributes) => <button type="button" {...attributes} />;
