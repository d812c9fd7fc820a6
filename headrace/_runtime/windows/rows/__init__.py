"""Windows row by row: any assigner, any trigger, any evictor, any function. Other engines are faster at less."""
