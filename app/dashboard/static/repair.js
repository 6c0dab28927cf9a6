// Files that are dropped on a form: one of them as the page, or a text and a picture together.

const isPicture = (file) => file.type.startsWith("image/");

export function takeDrops(form, send) {
  const stop = (event) => event.preventDefault();
  form.addEventListener("dragover", (event) => { stop(event); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    stop(event);
    form.classList.remove("over");
    const files = [...event.dataTransfer.files];
    if (files.length === 0) return;
    const pictures = files.filter(isPicture);
    const page = files.find((file) => !isPicture(file)) ?? pictures.shift();
    put(form.elements.file, page);
    put(form.elements.image, page === pictures[0] ? undefined : pictures[0]);
    send();
  });
}

function put(input, file) {
  const held = new DataTransfer();
  if (file) held.items.add(file);
  input.files = held.files;
}
