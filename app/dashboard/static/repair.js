// Drag and drop on upload forms: one file as the page, or a text together with an image.

const isImage = (file) => file.type.startsWith("image/");

export function acceptDrops(form, send) {
  const stop = (event) => event.preventDefault();
  form.addEventListener("dragover", (event) => { stop(event); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    stop(event);
    form.classList.remove("over");
    const files = [...event.dataTransfer.files];
    if (files.length === 0) return;
    const images = files.filter(isImage);
    const page = files.find((file) => !isImage(file)) ?? images.shift();
    setFile(form.elements.file, page);
    setFile(form.elements.image, page === images[0] ? undefined : images[0]);
    send();
  });
}

function setFile(input, file) {
  const transfer = new DataTransfer();
  if (file) transfer.items.add(file);
  input.files = transfer.files;
}
