import type { ButtonHTMLAttributes } from 'preact';

/** Unlike the HTML default, does not submit a form. */
export const Button = (attributes: ButtonHTMLAttributes) => <button type="button" {...attributes} />;
